/** A link to an address of the dashboard that is put together from data, followed without loading the page anew. */
import { useNavigate } from "@tanstack/react-router";
import type { MouseEvent, ReactNode } from "react";

export function PageLink(props: {
  href: string;
  label?: string;
  className?: string | undefined;
  children: ReactNode;
}) {
  const navigate = useNavigate();
  const follow = (event: MouseEvent) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button !== 0) return;
    event.preventDefault();
    void navigate({ href: props.href });
  };
  return (
    <a
      href={props.href}
      aria-label={props.label}
      title={props.label}
      className={props.className}
      onClick={follow}
    >
      {props.children}
    </a>
  );
}
