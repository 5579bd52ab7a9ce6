package streamgauge;

import java.time.LocalDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.api.common.functions.FlatMapFunction;
import org.apache.flink.api.common.functions.MapFunction;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.table.api.DataTypes;
import org.apache.flink.table.api.Schema;
import org.apache.flink.table.api.Table;
import org.apache.flink.table.api.bridge.java.StreamTableEnvironment;
import org.apache.flink.table.data.GenericRowData;
import org.apache.flink.table.data.RowData;
import org.apache.flink.table.data.StringData;
import org.apache.flink.table.functions.FunctionContext;
import org.apache.flink.table.functions.ScalarFunction;
import org.apache.flink.table.functions.TableFunction;
import org.apache.flink.table.runtime.typeutils.InternalTypeInfo;
import org.apache.flink.table.types.logical.BigIntType;
import org.apache.flink.table.types.logical.DoubleType;
import org.apache.flink.table.types.logical.LogicalType;
import org.apache.flink.table.types.logical.VarCharType;
import org.apache.flink.types.Row;
import org.apache.flink.types.RowKind;
import org.apache.flink.util.Collector;

/**
 * A query in Flink's SQL, over the table `events` and, in Nexmark, a view for each kind of event.
 *
 * A column seq, at_us, event_wall, offered_wall stands in each of them, `rowtime` with the watermark, `proctime`, and
 * those that the workload names, as key, value and number (the value as it is summed), whatever their names. Nexmark's
 * columns have their own. Of an answer that changes, each new row is a result, as our sink takes no retractions.
 */
final class Sql implements Job.Query {
    private static final String[] OWN = {"seq", "at_us", "event_wall", "offered_wall", "key", "value", "number"};

    @Override
    public DataStream<Result> over(DataStream<Event> events, Spec spec, Job.LateRows late) {
        StreamTableEnvironment tables = StreamTableEnvironment.create(events.getExecutionEnvironment());
        tables.getConfig().setLocalTimeZone(ZoneOffset.UTC);
        // in two phases the first one drops nothing, and the second one counts groups as late
        tables.getConfig().set("table.optimizer.agg-phase-strategy", "ONE_PHASE");
        tables.createTemporarySystemFunction("count_char", CountChar.class);
        tables.createTemporarySystemFunction("side_input", SideInput.class);
        List<String> names = new ArrayList<>(List.of(OWN));
        List<LogicalType> types = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            types.add(new BigIntType());
        }
        types.add(typeOf(spec, spec.key));
        types.add(typeOf(spec, spec.value));
        types.add(new BigIntType());
        for (String column : spec.own) {
            names.add(column);
            types.add(typeOf(spec, column));
        }
        InternalTypeInfo<RowData> type = InternalTypeInfo.ofFields(types.toArray(new LogicalType[0]), names.toArray(new String[0]));
        DataStream<RowData> rows = events.filter(event -> !event.sentinel).map(new ToRow(spec)).returns(type);
        tables.createTemporaryView("events", rows, Schema.newBuilder()
            .columnByMetadata("rowtime", DataTypes.TIMESTAMP_LTZ(3))
            .columnByExpression("proctime", "PROCTIME()")
            .watermark("rowtime", "SOURCE_WATERMARK()")
            .build());
        for (Map<String, Set<Object>> frame : spec.reads) {
            for (Object kind : frame.get("kind")) {
                tables.executeSql("CREATE TEMPORARY VIEW " + kind + " AS SELECT * FROM events WHERE kind = '" + kind + "'");
            }
        }
        Table answer = tables.sqlQuery(spec.sql);
        List<String> found = answer.getResolvedSchema().getColumnNames();
        int[] places = new int[spec.results.length];
        for (int i = 0; i < places.length; i++) {
            places[i] = found.indexOf(spec.results[i]);
        }
        int[] walls = {found.indexOf("event_wall"), found.indexOf("offered_wall")};
        return tables.toChangelogStream(answer).flatMap(new ToResult(places, walls)).returns(Result.class);
    }

    private static LogicalType typeOf(Spec spec, String column) {
        return switch (column == null ? "string" : spec.types[spec.column(column)]) {
            case "int64" -> new BigIntType();
            case "float64" -> new DoubleType();
            default -> new VarCharType(VarCharType.MAX_LENGTH);
        };
    }

    private static final class ToRow implements MapFunction<Event, RowData> {
        private static final long serialVersionUID = 1;
        private final int key;
        private final int value;
        private final boolean counts; // the value is a number
        private final int owns; // how many of the columns keep their names

        ToRow(Spec spec) {
            key = spec.column(spec.key);
            value = spec.column(spec.value);
            counts = value >= 0 && !spec.types[value].equals("string");
            owns = spec.own.length;
        }

        @Override
        public RowData map(Event event) {
            Object[] columns = event.columns;
            GenericRowData row = new GenericRowData(OWN.length + owns);
            row.setField(0, event.seq);
            row.setField(1, event.timeUs);
            row.setField(2, event.eventWall);
            row.setField(3, event.offeredWall);
            row.setField(4, key < 0 ? null : internal(columns[key]));
            row.setField(5, value < 0 ? null : internal(columns[value]));
            row.setField(6, counts ? WindowedAggregation.exact(columns[value]) : null);
            for (int i = 0; i < owns; i++) {
                row.setField(OWN.length + i, internal(columns[i]));
            }
            return row;
        }

        private static Object internal(Object value) {
            return value instanceof String text ? StringData.fromString(text) : value;
        }
    }

    private static final class ToResult implements FlatMapFunction<Row, Result> {
        private static final long serialVersionUID = 1;
        private final int[] places;
        private final int[] walls;

        ToResult(int[] places, int[] walls) {
            this.places = places;
            this.walls = walls;
        }

        @Override
        public void flatMap(Row row, Collector<Result> out) {
            if (row.getKind() != RowKind.INSERT && row.getKind() != RowKind.UPDATE_AFTER) {
                return;
            }
            Object[] values = new Object[places.length];
            for (int i = 0; i < values.length; i++) {
                Object value = row.getField(places[i]);
                values[i] = value instanceof LocalDateTime time ? (Long) micros(time) : value;
            }
            out.collect(new Result((Long) row.getField(walls[0]), (Long) row.getField(walls[1]), values));
        }

        private static long micros(LocalDateTime time) {
            return time.toEpochSecond(ZoneOffset.UTC) * 1_000_000 + time.getNano() / 1000;
        }
    }

    /** count_char(text, one): how often a character stands in a text. */
    public static final class CountChar extends ScalarFunction {
        private static final long serialVersionUID = 1;

        public Long eval(String text, String one) {
            return text == null ? null : text.chars().filter(letter -> letter == one.charAt(0)).count();
        }
    }

    /** side_input(key): the row of a bounded side input of 10,000 rows, key -> value. */
    public static final class SideInput extends TableFunction<String> {
        private static final long serialVersionUID = 1;
        private static final int ROWS = 10_000;
        private transient String[] side;

        @Override
        public void open(FunctionContext context) {
            side = new String[ROWS];
            for (int key = 0; key < ROWS; key++) {
                side[key] = "side-" + key;
            }
        }

        public void eval(Long key) {
            if (key != null && key >= 0 && key < ROWS) {
                collect(side[key.intValue()]);
            }
        }
    }
}
