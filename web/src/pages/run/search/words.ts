export const text = {
  label: "Places that were found",
  field: "Search all transcripts of this run",
  hint: "Text in any message, tool call, result or error. Capitals do not matter.",
  none: "Nothing was found",
  noneHint: (q: string) => `No transcript of this run contains “${q}”.`,
  found: (places: string, isWhole: boolean, isCut: boolean) =>
    `${places}${isCut ? ", and perhaps more: narrow the search" : isWhole ? "" : " so far"}`,
  searching: "Searching…",
  stop: "Stop",
  task: "Task",
  number: "Rollout",
  step: "Step",
  passage: "Passage",
  elsewhere: "Elsewhere in the row",
} as const;
