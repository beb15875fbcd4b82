/** Light, dark, or as the system says; remembered in this browser. */
import { createStore } from "./store";

export const THEMES = ["system", "light", "dark"] as const;
export type Theme = (typeof THEMES)[number];

const KEY = "proctor-theme";

export function readTheme(): Theme {
  try {
    const stored = localStorage.getItem(KEY);
    return THEMES.find((theme) => theme === stored) ?? "system";
  } catch {
    return "system"; // storage may be forbidden; the theme then lasts as long as the page
  }
}

export const theme = createStore<Theme>("system");

export function setTheme(next: Theme): void {
  document.documentElement.dataset.theme = next;
  theme.set(() => next);
  try {
    localStorage.setItem(KEY, next);
  } catch {}
}
