/** Where to go after the login: only a path of this server, whatever the address says. */

export function safeNext(next: string | undefined): string {
  if (!next?.startsWith("/")) return "/";
  const url = new URL(next, location.origin);
  return url.origin !== location.origin || url.pathname === "/login"
    ? "/"
    : url.pathname + url.search + url.hash;
}

export function readCode(fragment: string): string | null {
  const code = new URLSearchParams(fragment.replace(/^#/, "")).get("code");
  return code === "" ? null : code;
}
