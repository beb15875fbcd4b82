import { CSPProvider } from "@base-ui/react/csp-provider";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { startFeed } from "./app/feed";
import { createQueryClient } from "./app/queries";
import { createAppRouter } from "./app/router";
import { followSession, hasSessionEnded, noteRefusal, noteSession } from "./app/session";
import { readTheme, setTheme } from "./app/theme";
import "./design/tokens.css";
import "./design/base.css";
import { TooltipProvider } from "./design/Tooltip";

setTheme(readTheme());
const client = createQueryClient({
  onSession: noteSession,
  onRefused(refusal) {
    const { pathname, href } = router.state.location;
    if (pathname === "/login" || noteRefusal()) return;
    const search = { next: href, ...(hasSessionEnded(refusal) ? { ended: true as const } : {}) };
    void router.navigate({ to: "/login", search, replace: true });
  },
});
const router = createAppRouter(client);
startFeed(client);
followSession(client);

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
