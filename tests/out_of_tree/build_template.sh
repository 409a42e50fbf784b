#!/usr/bin/env bash
# build_template.sh CMAKE TEMPLATE BUILD_FOLDER LOAD_PLUGIN: copies the template to a temporary folder, builds it against the build
# folder, runs its test and loads it. Prints the seconds of the plugin's clean compile.
set -euo pipefail
cmake=$1 template=$2 build_folder=$3 load_plugin=$4

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cp -r "$template/." "$folder"
cd "$folder"

"$cmake" -S . -B build -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON -Dtally_DIR="$build_folder"
if grep -q framework/src build/compile_commands.json; then
  echo "the package leads to framework/src; a plugin may see framework/include only" >&2
  exit 1
fi

start=$(date +%s%N)
CCACHE_DISABLE=1 "$cmake" --build build --target scaled_mean
stop=$(date +%s%N)
echo "clean compile of scaled_mean: $(((stop - start) / 1000000)) ms"

"$cmake" --build build
"${cmake%cmake}ctest" --test-dir build --output-on-failure
loaded=$("$load_plugin" build/lib/tally/plugins/scaled_mean.so)
echo "$loaded"
[[ "$loaded" == "scaled_mean 0.1.0: loss_reducer/1 scaled_mean" ]]
