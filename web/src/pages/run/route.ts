import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "#/app/root";

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

export const runConfigRoute = createRoute({
  getParentRoute: () => runRoute,
  path: "/config",
  component: lazyRouteComponent(() => import("./Config"), "Config"),
});
