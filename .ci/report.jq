# Reads the output of commands, among it that of go test -json. With $part = "report" it prints
# what go test prints without -json; with "slowest", the 25 slowest tests; with "packages", the
# result of each package.

[inputs | (fromjson? | objects) // {Output: (. + "\n")}] as $events
| ($events | map(select(.Test and (.Action == "pass" or .Action == "skip")) | {key: "\(.Package) \(.Test)", value: true}) | from_entries) as $passed
| ($events | map(select(.Action == "fail" and (.Test | not)) | {key: .Package, value: true}) | from_entries) as $failed
| def result: .Output | test("^(ok|\\?|FAIL) *\t");
  if $part == "slowest" then
    $events
    | map(select(.Test and .Elapsed and (.Test | contains("/") | not)))
    | sort_by(-.Elapsed)[:25][]
    | "\(.Elapsed * 10 | round / 10) s\t\(.Package | sub("^github.com/go-relayer/relayer/?"; "")) \(.Test)\n"
  elif $part == "packages" then
    $events[] | select(.Package and .Output and (.Test | not) and result) | .Output
  else
    $events[]
    | select(.Output and (.Output | startswith("=== ") | not))
    | select(if .Test then $passed["\(.Package) \(.Test)"] | not
      elif .Package then result or $failed[.Package]
      else true end)
    | .Output
  end
