import { createRoute, redirect } from "@tanstack/react-router";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";

/** The frame of an environment's pages: its heading and tabs. `$name` may carry a version: `sums@1.0`. */
export const environmentRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/e/$owner/$name",
  component: lazyPage(() => import("./EnvironmentPage"), "EnvironmentPage"),
});

const environmentIndexRoute = createRoute({
  getParentRoute: () => environmentRoute,
  path: "/",
  beforeLoad: ({ params }) => {
    throw redirect({ to: "/e/$owner/$name/readme", params, replace: true });
  },
});

const readmeRoute = createRoute({
  getParentRoute: () => environmentRoute,
  path: "/readme",
  component: lazyPage(() => import("./Readme"), "Readme"),
});

const versionsRoute = createRoute({
  getParentRoute: () => environmentRoute,
  path: "/versions",
  component: lazyPage(() => import("./Versions"), "Versions"),
});

const filesRoute = createRoute({
  getParentRoute: () => environmentRoute,
  path: "/files/$",
  component: lazyPage(() => import("./Files"), "Files"),
});

const argumentsRoute = createRoute({
  getParentRoute: () => environmentRoute,
  path: "/arguments",
  component: lazyPage(() => import("./Arguments"), "Arguments"),
});

const tasksRoute = createRoute({
  getParentRoute: () => environmentRoute,
  path: "/tasks",
  component: lazyPage(() => import("./Tasks"), "Tasks"),
});

const secretsRoute = createRoute({
  getParentRoute: () => environmentRoute,
  path: "/secrets",
  component: lazyPage(() => import("./Secrets"), "Secrets"),
});

const accessRoute = createRoute({
  getParentRoute: () => environmentRoute,
  path: "/access",
  component: lazyPage(() => import("./access/Access"), "Access"),
});

export const environmentTabRoutes = [
  environmentIndexRoute,
  readmeRoute,
  versionsRoute,
  filesRoute,
  argumentsRoute,
  tasksRoute,
  secretsRoute,
  accessRoute,
] as const;
