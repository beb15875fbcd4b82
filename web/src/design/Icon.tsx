/** Line icons, 16 by 16. They are decoration: the words beside them, or an aria-label, carry the meaning. */
import styles from "./Icon.module.css";

const PATHS = {
  alert:
    "M8 5.5v3.2M8 11.2v.1M7.1 2.6 1.7 12a1 1 0 0 0 .9 1.5h10.8a1 1 0 0 0 .9-1.5L8.9 2.6a1 1 0 0 0-1.8 0Z",
  arrowDown: "M8 3v10M4 9l4 4 4-4",
  arrowLeft: "M13 8H3M7 4 3 8l4 4",
  arrowRight: "M3 8h10M9 4l4 4-4 4",
  arrowUp: "M8 13V3M4 7l4-4 4 4",
  ban: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2ZM3.8 3.8l8.4 8.4",
  box: "M2.5 5 8 2l5.5 3v6L8 14l-5.5-3zM2.5 5 8 8l5.5-3M8 8v6",
  check: "m3 8.5 3.2 3.2L13 4.8",
  checkCircle: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2Zm-2.6 6.2 1.9 1.9 3.4-3.8",
  chevronDown: "m4 6 4 4 4-4",
  chevronRight: "m6 4 4 4-4 4",
  circle: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11Z",
  clock: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2Zm0 2.8V8l2.2 1.6",
  close: "m4 4 8 8m0-8-8 8",
  columns: "M2.5 3h11v10h-11zM6.2 3v10M9.8 3v10",
  compare: "M5 3 2 6l3 3M2 6h8M11 7l3 3-3 3M14 10H6",
  copy: "M5.5 5.5h7v7h-7zM10.5 5.5v-2h-7v7h2",
  download: "M8 2.5v7.5M4.8 7 8 10.2 11.2 7M3 13h10",
  external: "M9 3h4v4M13 3 7.5 8.5M11.5 9v4h-8.5V4.5h4",
  filter: "M2.5 4h11M4.5 8h7M6.5 12h3",
  half: "M8 2.5a5.5 5.5 0 1 1 0 11 5.5 5.5 0 0 1 0-11ZM8 3v10",
  help: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2ZM6.3 6.2A1.7 1.7 0 1 1 8.6 8c-.5.2-.6.5-.6 1M8 11.2v.1",
  key: "M9.5 6.5a3.2 3.2 0 1 0-2 2L8 9h1.5v1.5H11V12h2.5V9.8z",
  link: "M6.8 9.2 9.2 6.8M7 4.8l1-1a2.8 2.8 0 0 1 4 4l-1 1M9 11.2l-1 1a2.8 2.8 0 0 1-4-4l1-1",
  list: "M5.5 4h8M5.5 8h8M5.5 12h8M2.6 4h.1M2.6 8h.1M2.6 12h.1",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  minus: "M3.5 8h9",
  monitor: "M2 3h12v8H2zM6 13.5h4M8 11v2.5",
  moon: "M13 9.6A5.5 5.5 0 0 1 6.4 3 5.5 5.5 0 1 0 13 9.6Z",
  more: "M3.5 8h.1M8 8h.1M12.5 8h.1",
  person: "M8 8a2.7 2.7 0 1 0 0-5.4A2.7 2.7 0 0 0 8 8Zm-5 5.5c.5-2.3 2.5-3.5 5-3.5s4.5 1.2 5 3.5",
  play: "M5 3.2v9.6l7.5-4.8z",
  plus: "M8 3.5v9M3.5 8h9",
  search: "M7 2.5a4.5 4.5 0 1 1 0 9 4.5 4.5 0 0 1 0-9ZM10.3 10.3l3.2 3.2",
  square: "M4 4h8v8H4z",
  sun: "M8 5.2a2.8 2.8 0 1 1 0 5.6 2.8 2.8 0 0 1 0-5.6ZM8 1.8v1M8 13.2v1M1.8 8h1M13.2 8h1M3.6 3.6l.7.7M11.7 11.7l.7.7M12.4 3.6l-.7.7M4.3 11.7l-.7.7",
  terminal: "m3 4.5 3.5 3.5L3 11.5M8 12h5",
  trash: "M3 4.5h10M6.5 4.5V3h3v1.5M4.5 4.5l.6 8.5h5.8l.6-8.5",
  wrench: "M10 6 3.5 12.5M9 3.2a3 3 0 0 1 3.8 3.8L11 8.5 7.5 5z",
  xCircle: "M8 2a6 6 0 1 1 0 12A6 6 0 0 1 8 2ZM5.9 5.9l4.2 4.2m0-4.2-4.2 4.2",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      className={styles.icon}
      width={size}
      height={size}
      viewBox="0 0 16 16"
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}
