import { createRoute } from "@tanstack/react-router";
import { runQuery, summaryQuery } from "#/api/runs";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readText } from "#/app/search";
import { readDecideSearch } from "./decide/search";
import { readLabelSearch } from "./labels/search";
import { readLogSearch } from "./logs/search";
import { readSampleSearch } from "./samples/search";

/** The frame of a run's pages: its heading and tabs. Their routes are its children. */
export const runRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs/$runId",
  /** Asked for while the page's code is still on its way. */
  loader: ({ context: { client }, params: { runId }, preload }) => {
    if (preload) return;
    void client.prefetchQuery(runQuery(runId));
    void client.prefetchQuery(summaryQuery(runId));
  },
  component: lazyPage(() => import("./RunPage"), "RunPage"),
});

export const runOverviewRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/",
  component: lazyPage(() => import("./Overview"), "Overview"),
});

export const runSamplesRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/samples",
  validateSearch: readSampleSearch,
  component: lazyPage(() => import("./samples/Samples"), "Samples"),
});

export const runSearchRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/search",
  validateSearch: (search: RawSearch) => compact({ q: readText(search.q) }),
  component: lazyPage(() => import("./search/Search"), "Search"),
});

export const runLogsRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/logs",
  validateSearch: readLogSearch,
  component: lazyPage(() => import("./logs/Logs"), "Logs"),
});

export const runFailuresRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/failures",
  component: lazyPage(() => import("./failures/Failures"), "Failures"),
});

export const runCommentsRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/comments",
  component: lazyPage(() => import("./Comments"), "Comments"),
});

export const runDecideRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/decide",
  validateSearch: readDecideSearch,
  component: lazyPage(() => import("./decide/Decide"), "Decide"),
});

export const runLabelsRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/labels",
  component: lazyPage(() => import("./labels/Labels"), "Labels"),
});

/** Not a child of the run: its heading names the model. */
export const labelRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs/$runId/label",
  validateSearch: readLabelSearch,
  component: lazyPage(() => import("./labels/LabelPage"), "LabelPage"),
});

export const runConfigRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/config",
  component: lazyPage(() => import("./Config"), "Config"),
});
