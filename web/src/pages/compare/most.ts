/** As many runs as the server compares at once. */
export const MOST_COMPARED = 8;
