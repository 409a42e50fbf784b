#!/usr/bin/env bash
# build_template.sh CMAKE TEMPLATE BUILD_FOLDER LOAD_PLUGIN TALLY SOURCE: copies the template to a temporary folder, builds it against
# the build folder, runs its test, loads it and compares a recipe with it. Prints the seconds of the plugin's clean compile.
set -euo pipefail
cmake=$1 template=$2 build_folder=$3 load_plugin=$4 tally=$5 source=$6

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

# Its own option reaches the recipe that knows it, and not the known error beside it, which has another reducer.
cp -r "$source/recipes" "$source/configs" .
sed 's/"token_mean".*/"scaled_mean"/; s/"correct"/"scaled"/' recipes/correct.toml >recipes/scaled.toml
compare() {
  "$tally" compare --json --plugin-path build/lib/tally/plugins --set run.device=cpu --set window.batch_size=2 \
    --must-pass recipes/scaled.toml "$@"
}
"$tally" prepare >prepare.log
expect() { # EXPECTED PYTHON_EXPRESSION_OVER_document FILE
  found=$(python3 -c "import json; document = json.load(open('$3')); print($2)")
  [[ "$found" == "$1" ]] || { echo "$2 is $found and should be $1" >&2; exit 1; }
}
names='[(row["name"], row["reference"], row["pass"]) for row in document["recipes"]]'
size='document["recipes"][-1]["max_reference"]'
compare --set loss_reducer.factor=1 >once.json
compare --set loss_reducer.factor=4 --must-fail recipes/wrong.toml >four.json
expect "[('scaled', 'scaled', True)]" "$names" once.json
expect "1" 'len(document["remarks"])' once.json
expect "[('wrong', 'scaled', False), ('scaled', 'scaled', True)]" "$names" four.json
expect "True" "$size == 4 * json.load(open('once.json'))${size#document}" four.json
