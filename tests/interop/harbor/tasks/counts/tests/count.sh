count() {
  found=0
  for file in "$1"/*; do if [ "$(cat "$file")" = "$2" ]; then found=$((found + 1)); fi; done
  echo $found
}
