/** Pages whose script is loaded when they are opened, also while the server is away. */
import { lazyRouteComponent } from "@tanstack/react-router";

/** The script of a page could not be fetched because the server does not answer. */
export class ServerAwayError extends Error {
  override readonly name = "ServerAwayError";
}

/**
 * As the router's own, which reloads the whole document when a script is missing. After an upgrade of the server that
 * helps; while the server is away it would leave nothing but a blank page.
 */
export const lazyPage: typeof lazyRouteComponent = (importer, exportName) =>
  lazyRouteComponent(
    () =>
      importer().catch(async (error: unknown) => {
        throw (await serverAnswers()) ? error : new ServerAwayError(String(error));
      }),
    exportName,
  );

export async function serverAnswers(): Promise<boolean> {
  try {
    return (await fetch("/", { cache: "no-store", headers: { accept: "text/html" } })).ok;
  } catch {
    return false;
  }
}
