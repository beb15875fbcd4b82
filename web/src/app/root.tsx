/** The route above all pages: the shell around them, and what is shown in place of a page that fails. */
import type { QueryClient } from "@tanstack/react-query";
import { createRootRouteWithContext } from "@tanstack/react-router";
import { LINK_PARAMETER } from "#/api/client";
import { Shell } from "./Shell";
import { compact, type RawSearch, readText } from "./search";

/** The link a run was shared by stays in the address on every page. */
export const rootRoute = createRootRouteWithContext<{ client: QueryClient }>()({
  component: Shell,
  validateSearch: (search: RawSearch) =>
    compact({ [LINK_PARAMETER]: readText(search[LINK_PARAMETER]) }) as { link?: string },
  search: {
    middlewares: [
      ({ search, next }) => {
        const after = next(search);
        return search.link && !after.link ? { ...after, link: search.link } : after;
      },
    ],
  },
});
