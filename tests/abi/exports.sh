#!/usr/bin/env bash
# exports.sh NM PLUGIN: fails unless the plugin's only exported symbol is its descriptor.
set -euo pipefail
exported=$("$1" -D --defined-only "$2" | awk '{print $NF}')
if [[ "$exported" != "tally_plugin_v1" ]]; then
  echo "$2 exports:" $exported >&2
  echo "a plugin exports tally_plugin_v1 and nothing else; is it built with tally_add_plugin()?" >&2
  exit 1
fi
