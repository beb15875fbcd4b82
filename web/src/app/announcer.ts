/** What changed without the reader's doing, for screen readers: one polite region, shown by the shell. */
import { createStore } from "./store";

export const announcements = createStore({ text: "", count: 0 });

/** The count makes the same sentence audible twice. */
export const announce = (text: string): void =>
  announcements.set(({ count }) => ({ text, count: count + 1 }));
