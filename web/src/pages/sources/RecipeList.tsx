/** The recipes of a commit; one that cannot be played says why. */
import { useId } from "react";
import type { SourceRecipe } from "#/api/sources";
import { readExperiment } from "./recipe";
import styles from "./sources.module.css";
import { text } from "./words";

type Props = {
  recipes: readonly SourceRecipe[];
  chosen: string | undefined;
  onChoose: (path: string) => void;
};

export function RecipeList({ recipes, chosen, onChoose }: Props) {
  const name = useId();
  if (recipes.length === 0) return <p className={styles.faint}>{text.submit.noRecipes}</p>;
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a region that scrolls must be reachable by keyboard
    <section className={styles.scroll} aria-label={text.submit.recipes} tabIndex={0}>
      <table className={styles.recipes}>
        <thead>
          <tr>
            <th scope="col">{text.submit.columns.path}</th>
            <th scope="col">{text.submit.columns.rollout}</th>
            <th scope="col">{text.submit.columns.model}</th>
            <th scope="col">{text.submit.columns.dataset}</th>
          </tr>
        </thead>
        <tbody>
          {recipes.map((recipe) => (
            <tr key={recipe.path}>
              <td>
                <label className={styles.choice}>
                  <input
                    type="radio"
                    name={name}
                    checked={recipe.path === chosen}
                    disabled={Boolean(recipe.problem)}
                    onChange={() => onChoose(recipe.path)}
                  />
                  <span>{recipe.path}</span>
                </label>
              </td>
              {recipe.problem ? (
                <td colSpan={3} className={styles.problem}>
                  {recipe.problem}
                </td>
              ) : (
                <>
                  <td>{readExperiment(recipe, "rollout")}</td>
                  <td>{readExperiment(recipe, "model_path")}</td>
                  <td>{readExperiment(recipe, "dataset")}</td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
    </section>
  );
}
