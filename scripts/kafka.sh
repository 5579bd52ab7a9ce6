#!/bin/sh
# Makes .venvs/kafka: a Kafka broker, a schema registry, Kafka Streams and connectors for the examples, each file
# of a known SHA-256.
# They come by Maven where it is installed, else by curl from Maven Central, or from the mirror that MAVEN_URL names.
place=.venvs/kafka
pins=$PWD/scripts/kafka.sha256 # lines of: SHA-256, folder, path in a Maven repository
fail() { echo "streamgauge: $1" >&2; exit 1; }

command -v java >/dev/null || fail "no java on PATH; a Kafka broker needs Java, 17 or newer"
stamp=$(cat "$pins" "$0" | cksum)
test "$(cat "$place/.ready" 2>/dev/null)" = "$stamp" && { echo "$place"; exit 0; }
taken=$(mktemp -d) && trap 'rm -rf "$taken"' EXIT

by_maven() {
    for folder in $(cut -d' ' -f2 "$pins" | sort -u); do
        said=$(mvn --quiet --batch-mode --file scripts/kafka-pom.xml --activate-profiles "$folder" \
            dependency:copy-dependencies -DincludeScope=runtime -Dmdep.useRepositoryLayout=true \
            -DoutputDirectory="$taken" 2>&1) || {
            echo "$said" >&2
            fail "Maven cannot resolve the jars of $folder; is its repository reachable?"
        }
    done
}

by_curl() {
    from=${MAVEN_URL:-https://repo.maven.apache.org/maven2}
    while read -r _ _ path; do
        test -e "$taken/$path" || curl --fail --silent --show-error --retry 3 --create-dirs \
            --output "$taken/$path" "$from/$path" || fail "$from/$path cannot be downloaded"
    done <"$pins"
}

if test -z "$MAVEN_URL" && command -v mvn >/dev/null; then
    by_maven
else
    command -v curl >/dev/null || fail "neither mvn nor curl is on PATH, and one of them must download Kafka"
    by_curl
fi
rm -rf "$place"
while read -r wanted folder path; do
    found=$(sha256sum "$taken/$path" 2>/dev/null | cut -d' ' -f1)
    test "$found" = "$wanted" || fail "${path##*/}: found SHA-256 ${found:-of no file}, wanted $wanted"
    mkdir -p "$place/$folder" || fail "$place cannot be written"
    case $path in
        *.tar.gz) tar -xzf "$taken/$path" -C "$place/$folder" ;;
        *) cp "$taken/$path" "$place/$folder/" ;;
    esac || fail "$place cannot be written"
done <"$pins"
echo "$stamp" >"$place/.ready"
echo "$place"
