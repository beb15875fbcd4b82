import { createRoute, lazyRouteComponent } from "@tanstack/react-router";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readText } from "#/app/search";

/** The frame of the pages for admins: heading, tabs, and why others see nothing. */
export const adminRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/admin",
  component: lazyRouteComponent(() => import("./AdminPage"), "AdminPage"),
});

const usersRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/",
  component: lazyRouteComponent(() => import("./Users"), "Users"),
});

const modelsRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/models",
  component: lazyRouteComponent(() => import("./Models"), "Models"),
});

const hostsRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/hosts",
  component: lazyRouteComponent(() => import("./Hosts"), "Hosts"),
});

const sourcesRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/sources",
  component: lazyRouteComponent(() => import("./SyncedSources"), "SyncedSources"),
});

const storageRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/storage",
  component: lazyRouteComponent(() => import("./StoragePart"), "StoragePart"),
});

const balancesRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/balances",
  component: lazyRouteComponent(() => import("./Balances"), "Balances"),
});

const auditRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/audit",
  validateSearch: (search: RawSearch) =>
    compact({
      user: readText(search.user),
      action: readText(search.action),
      target: readText(search.target),
      since: readText(search.since),
    }),
  component: lazyRouteComponent(() => import("./AuditLog"), "AuditLog"),
});

export const ADMIN_ROUTES = [
  usersRoute,
  modelsRoute,
  hostsRoute,
  sourcesRoute,
  storageRoute,
  balancesRoute,
  auditRoute,
] as const;
