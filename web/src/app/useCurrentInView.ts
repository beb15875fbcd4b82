/** Scrolls a row of links to the one of the page shown, as a phone is too narrow for all of them. */
import { useRouterState } from "@tanstack/react-router";
import { type RefObject, useEffect, useRef } from "react";

export function useCurrentInView(): RefObject<HTMLElement | null> {
  const row = useRef<HTMLElement>(null);
  const shown = useRef<Element>(null);
  useRouterState({ select: (state) => state.resolvedLocation?.pathname });
  // After every render, since a link may come later than its page; a row that the reader moved stays where it is.
  useEffect(() => {
    const link = row.current?.querySelector('[aria-current="page"]') ?? null;
    if (link !== shown.current) link?.scrollIntoView({ block: "nearest", inline: "center" });
    shown.current = link;
  });
  return row;
}
