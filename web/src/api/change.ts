/** A change that a person asks for: sent once, its refusal kept for the place where it was asked for.
 *
 * A second click while one is under way does nothing. A change that is tried again after the server did not
 * answer carries the same idempotency key, so that it happens once even if the first request arrived.
 */
import { type QueryKey, useMutation, useQueryClient } from "@tanstack/react-query";
import { useRef } from "react";
import { ApiError, isAway } from "./client";

export type FieldProblems = Readonly<Record<string, string>>;

/** What is wrong, by the field of the request it is wrong with. */
export function fieldProblems(error: unknown): FieldProblems {
  if (!(error instanceof ApiError)) return {};
  const { problems, field } = error.details;
  const found: Record<string, string> = {};
  if (Array.isArray(problems))
    for (const each of problems as { field?: unknown; message?: unknown }[])
      if (typeof each.field === "string" && typeof each.message === "string")
        found[each.field] = found[each.field] ? `${found[each.field]} ${each.message}` : each.message;
  if (typeof field === "string" && !(field in found)) found[field] = error.message;
  return found;
}

/** Random enough to be used by nobody else. A page over plain HTTP has no `crypto.randomUUID`. */
export const newKey = (): string =>
  Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join(
    "",
  );

type Options<Given, Answer> = {
  /** Sends the request; pass the key as the `Idempotency-Key` header where the route takes one. */
  send: (given: Given, key: string) => Promise<Answer>;
  /** Queries that the change makes out of date. */
  refresh?: readonly QueryKey[];
  onDone?: (answer: Answer, given: Given) => void;
};

export type Change<Given, Answer> = {
  submit: (given: Given) => void;
  isBusy: boolean;
  error: Error | null;
  /** By field; empty if the refusal is about no field. */
  problems: FieldProblems;
  answer: Answer | undefined;
  reset: () => void;
};

export function useChange<Given = void, Answer = unknown>(
  options: Options<Given, Answer>,
): Change<Given, Answer> {
  const client = useQueryClient();
  const key = useRef<string | null>(null);
  const underWay = useRef(false);
  const mutation = useMutation<Answer, Error, Given>({
    mutationFn: (given) => {
      key.current ??= newKey();
      return options.send(given, key.current);
    },
    retry: false,
    onError: (error) => {
      if (!isAway(error)) key.current = null;
    },
    onSuccess: async (answer, given) => {
      key.current = null;
      await Promise.all((options.refresh ?? []).map((queryKey) => client.invalidateQueries({ queryKey })));
      options.onDone?.(answer, given);
    },
    onSettled: () => {
      underWay.current = false;
    },
  });
  return {
    submit: (given) => {
      if (underWay.current) return;
      underWay.current = true;
      mutation.mutate(given);
    },
    isBusy: mutation.isPending,
    error: mutation.error,
    problems: fieldProblems(mutation.error),
    answer: mutation.data,
    reset: () => {
      key.current = null;
      mutation.reset();
    },
  };
}
