/** Choose a commit and one of its recipes, see what would be played, and start it. */
import { useQuery } from "@tanstack/react-query";
import { getRouteApi, useNavigate } from "@tanstack/react-router";
import { type SourceInfo, sourceContentQuery } from "#/api/sources";
import { changeSearch, type SearchChange } from "#/app/search";
import { Section } from "#/design/Section";
import { Loaded } from "#/parts/Loaded";
import { CommitPicker } from "./CommitPicker";
import { RecipeForm, type SubmitSearch } from "./RecipeForm";
import { RecipeList } from "./RecipeList";
import styles from "./sources.module.css";
import { text } from "./words";

const route = getRouteApi("/sources/$sourceId");

type Props = { source: SourceInfo; isSyncing: boolean; onBranch: (branch: string) => void };

export function SubmitForm({ source, isSyncing, onBranch }: Props) {
  const search = route.useSearch();
  const navigate = useNavigate();
  const update = (change: SearchChange<SubmitSearch>) =>
    void navigate({
      to: "/sources/$sourceId",
      params: { sourceId: source.id },
      search: (before) => changeSearch(before as SubmitSearch, change),
      replace: true,
    });
  const commit = search.commit ?? source.commit_sha ?? "";
  const content = useQuery(sourceContentQuery(source.id, commit));
  const recipes = content.data?.recipes ?? [];
  const recipe =
    recipes.find(({ path }) => path === search.recipe) ?? recipes.find(({ problem }) => !problem);
  return (
    <Section title={text.submit.title}>
      <div className={styles.form}>
        <CommitPicker
          source={source}
          commit={commit}
          isSyncing={isSyncing}
          onCommit={(next) => update({ commit: next === source.commit_sha ? undefined : next })}
          onBranch={(branch) => {
            update({ commit: undefined });
            onBranch(branch);
          }}
        />
        <Loaded query={content} lines={3}>
          {(found) => (
            <RecipeList
              recipes={found.recipes}
              chosen={recipe?.path}
              onChoose={(path) => update({ recipe: path })}
            />
          )}
        </Loaded>
        {recipe && !recipe.problem && (
          <RecipeForm
            key={recipe.path}
            source={source}
            commit={commit}
            recipe={recipe}
            search={search}
            onSearch={update}
          />
        )}
      </div>
    </Section>
  );
}
