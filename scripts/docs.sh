#!/bin/sh
# Renders docs/ as web pages, in site/; a broken link is an error. README and CONTRIBUTING become pages beside the others.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
pages=$(mktemp -d)
trap 'rm -rf "$pages"' EXIT
cp -R "$here/docs" "$here/mkdocs.yml" "$pages"
sed 's#](docs/#](#g' "$here/README.md" > "$pages/docs/overview.md"
sed 's#](docs/#](#g' "$here/CONTRIBUTING.md" > "$pages/docs/contributing.md"
find "$pages/docs" -name '*.md' -exec sed -i.bak 's#](\.\./README\.md#](overview.md#g
    s#](\.\./CONTRIBUTING\.md#](contributing.md#g' {} +
find "$pages" -name '*.bak' -delete
(cd "$pages" && "$here/.venv/bin/zensical" build --strict)
rm -rf "$here/site"
mv "$pages/site" "$here/site"
