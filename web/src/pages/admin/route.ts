import { createRoute } from "@tanstack/react-router";
import { lazyPage } from "#/app/lazyPage";
import { rootRoute } from "#/app/root";
import { compact, type RawSearch, readText } from "#/app/search";

/** The frame of the pages for admins: heading, tabs, and why others see nothing. */
export const adminRoute = createRoute({
  getParentRoute: () => rootRoute,
  path: "/admin",
  component: lazyPage(() => import("./AdminPage"), "AdminPage"),
});

const usersRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/",
  component: lazyPage(() => import("./Users"), "Users"),
});

const modelsRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/models",
  component: lazyPage(() => import("./Models"), "Models"),
});

const hostsRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/hosts",
  component: lazyPage(() => import("./Hosts"), "Hosts"),
});

const sourcesRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/sources",
  component: lazyPage(() => import("./SyncedSources"), "SyncedSources"),
});

const storageRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/storage",
  component: lazyPage(() => import("./StoragePart"), "StoragePart"),
});

const balancesRoute = createRoute({
  getParentRoute: () => adminRoute,
  path: "/balances",
  component: lazyPage(() => import("./Balances"), "Balances"),
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
  component: lazyPage(() => import("./AuditLog"), "AuditLog"),
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
