/** A sentence of the server in which commands stand between backticks. */
export function Commands({ text }: { text: string }) {
  return text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part));
}
