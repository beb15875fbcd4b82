import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "#/app/root";
import { readLogSearch } from "./logs/search";
import { readSampleSearch } from "./samples/search";

/** The frame of a run's pages: its heading and tabs. Their routes are its children. */
export const runRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/runs/$runId",
  component: lazyRouteComponent(() => import("./RunPage"), "RunPage"),
});

export const runOverviewRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/",
  component: lazyRouteComponent(() => import("./Overview"), "Overview"),
});

export const runSamplesRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/samples",
  validateSearch: readSampleSearch,
  component: lazyRouteComponent(() => import("./samples/Samples"), "Samples"),
});

export const runLogsRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/logs",
  validateSearch: readLogSearch,
  component: lazyRouteComponent(() => import("./logs/Logs"), "Logs"),
});

export const runFailuresRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/failures",
  component: lazyRouteComponent(() => import("./failures/Failures"), "Failures"),
});

export const runConfigRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/config",
  component: lazyRouteComponent(() => import("./Config"), "Config"),
});
