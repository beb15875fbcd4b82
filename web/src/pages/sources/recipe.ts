/** What a recipe says, as its file has it. */
import type { SourceRecipe } from "#/api/sources";

export function readExperiment(recipe: SourceRecipe, field: string): string {
  const experiment = (recipe.recipe as { experiment?: Record<string, unknown> } | undefined)?.experiment;
  const value = experiment?.[field];
  return typeof value === "string" ? value : "";
}
