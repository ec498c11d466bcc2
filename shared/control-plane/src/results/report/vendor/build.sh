#!/usr/bin/env bash
# Makes echarts.min.js anew, byte for byte, and its LICENSE.txt; needs Node.js and npm. The Rust build needs neither.
set -euo pipefail
here="$(cd "$(dirname "$0")" && pwd)"
build="$(mktemp -d)"
trap 'rm -rf "$build"' EXIT
cp "$here/charts.js" "$build/"
cd "$build"
npm init --yes >/dev/null
npm install --silent --save-exact echarts@6.1.0 esbuild@0.28.2
npx esbuild charts.js --bundle --minify --format=iife --global-name=echarts --target=es2022 --legal-comments=none \
    --define:process.env.NODE_ENV='"production"' \
    --banner:js='/* Apache ECharts 6.1.0, a custom build; notices at the end */' \
    --outfile="$here/echarts.min.js"
{
    for file in echarts/NOTICE echarts/LICENSE echarts/licenses/LICENSE-d3 zrender/LICENSE tslib/LICENSE.txt; do
        printf '==== %s\n\n' "$file"
        cat "node_modules/$file"
        printf '\n\n'
    done
} >"$here/LICENSE.txt"
# The page is passed on by its readers: the notices go with it.
{
    printf '/*\n'
    cat node_modules/echarts/NOTICE
    printf '\n\nLicensed under the Apache License, Version 2.0: http://www.apache.org/licenses/LICENSE-2.0\n\nZRender. '
    cat node_modules/zrender/LICENSE
    printf '\nd3. '
    cat node_modules/echarts/licenses/LICENSE-d3
    printf '*/\n'
} >>"$here/echarts.min.js"
