import { expect, test } from "vitest";
import { fieldProblems } from "./change";
import { ApiError } from "./client";

test("every problem stands at its own field", () => {
  const error = new ApiError(422, "invalid", "Two things are wrong.", {
    problems: [
      { field: "settings.num_examples", message: "It must be at least 1." },
      { field: "model", message: "There is no such model." },
    ],
  });
  expect(fieldProblems(error)).toEqual({
    "settings.num_examples": "It must be at least 1.",
    model: "There is no such model.",
  });
});

test("a refusal about one field says its sentence there", () => {
  const error = new ApiError(409, "taken", "The name is taken.", { field: "name" });
  expect(fieldProblems(error)).toEqual({ name: "The name is taken." });
});

test("a refusal about no field has none", () => {
  expect(fieldProblems(new ApiError(403, "forbidden", "You may not."))).toEqual({});
  expect(fieldProblems(new Error("broken"))).toEqual({});
});
