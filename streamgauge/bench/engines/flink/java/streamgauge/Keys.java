package streamgauge;

/** Keys as texts, since Flink groups by no null. */
final class Keys {
    private Keys() {}

    static String encoded(Object key) {
        if (key == null) {
            return "-";
        }
        return key instanceof Double number ? "=" + Double.doubleToLongBits(number == 0 ? 0.0 : number) : "=" + key;
    }

    static Object decoded(String text, String type) {
        if (text.equals("-")) {
            return null;
        }
        String value = text.substring(1);
        return switch (type) {
            case "int64" -> Long.parseLong(value);
            case "float64" -> Double.longBitsToDouble(Long.parseLong(value));
            default -> value;
        };
    }
}
