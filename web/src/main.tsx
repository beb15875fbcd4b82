import { CSPProvider } from "@base-ui/react/csp-provider";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { startFeed } from "./app/feed";
import { createQueryClient } from "./app/queries";
import { createAppRouter } from "./app/router";
import { readTheme, setTheme } from "./app/theme";
import "./design/tokens.css";
import "./design/base.css";
import { TooltipProvider } from "./design/Tooltip";

setTheme(readTheme());
const router = createAppRouter();
const client = createQueryClient(() => {
  const { pathname, href } = router.state.location;
  if (pathname !== "/login") void router.navigate({ to: "/login", search: { next: href }, replace: true });
});
startFeed(client);

const root = document.getElementById("root");
if (root)
  createRoot(root).render(
    <StrictMode>
      <CSPProvider disableStyleElements>
        <QueryClientProvider client={client}>
          <TooltipProvider>
            <RouterProvider router={router} />
          </TooltipProvider>
        </QueryClientProvider>
      </CSPProvider>
    </StrictMode>,
  );
