/** The HTTP client: typed by the API's own document, with one kind of error, and the link a run was shared by. */
import createClient, { type Middleware } from "openapi-fetch";
import type { paths } from "./schema";

export const LINK_PARAMETER = "link";
const LINK_HEADER = "proctor-link";

/** A refusal by the server, or none at all: then the status is 0. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  readonly status: number;
  readonly code: string;
  readonly details: Record<string, unknown>;

  constructor(status: number, code: string, message: string, details: Record<string, unknown> = {}) {
    super(message);
    this.status = status;
    this.code = code;
    this.details = details;
  }
}

export const isAway = (error: unknown): boolean =>
  error instanceof ApiError &&
  (error.status === 0 || error.status === 502 || error.status === 503 || error.status === 504);

const linked: Middleware = {
  onRequest({ request }) {
    const link = new URLSearchParams(location.search).get(LINK_PARAMETER);
    if (link) request.headers.set(LINK_HEADER, link);
    return request;
  },
};

export const api = createClient<paths>({
  baseUrl: typeof location === "undefined" ? "" : location.origin,
  credentials: "same-origin",
  querySerializer: { array: { style: "form", explode: true } },
  fetch: (request: Request) => globalThis.fetch(request),
});
api.use(linked);

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** The data of an answer; a refusal becomes an `ApiError` with the server's own sentence. */
export async function read<T>(pending: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await pending;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "unreachable", "The server does not answer.");
  }
  if (answer.response.ok) return answer.data as T;
  throw readProblem(answer.response.status, answer.error);
}

export function readProblem(status: number, body: unknown): ApiError {
  const problem = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  const message = typeof problem.message === "string" ? problem.message : `The server answered ${status}.`;
  const code = typeof problem.code === "string" ? problem.code : "unknown";
  return new ApiError(status, code, message, (problem.details ?? {}) as Record<string, unknown>);
}

/** An address of the API for links and images, which cannot send headers. */
export function apiHref(
  path: string,
  query: Record<string, string | readonly string[] | undefined> = {},
): string {
  const parameters = new URLSearchParams();
  for (const [name, value] of Object.entries(query))
    for (const each of value === undefined ? [] : [value].flat()) parameters.append(name, each as string);
  const link = new URLSearchParams(location.search).get(LINK_PARAMETER);
  if (link) parameters.set(LINK_PARAMETER, link);
  const text = parameters.toString();
  return `/api/v1${path}${text && `?${text}`}`;
}
