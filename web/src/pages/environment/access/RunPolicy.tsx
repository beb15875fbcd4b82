/** Who may run it on the server: its readers, or only those who may change it. */
import { useChange } from "#/api/change";
import { ENVIRONMENTS_KEY, environmentKey } from "#/api/environmentKeys";
import { changeEnvironment, slugOf } from "#/api/environments";
import { Section } from "#/design/Section";
import { Select } from "#/design/Select";
import { Problem } from "#/parts/Problem";
import { useEnvironment } from "../context";
import styles from "../environment.module.css";
import { explainRole } from "../rights";
import { text } from "../words";

const words = text.access;
const POLICIES = ["default", "readers", "writers"] as const;

export function RunPolicy() {
  const shown = useEnvironment();
  const { environment, slug } = shown;
  const change = useChange({
    send: (run_policy: (typeof POLICIES)[number]) => changeEnvironment(slug, { run_policy }),
    refresh: [environmentKey(slugOf(slug)), ENVIRONMENTS_KEY],
  });
  const reason = explainRole(shown, "owner");
  return (
    <Section title={words.runPolicy}>
      <Select
        label={words.runPolicy}
        hideLabel
        className={styles.choice ?? ""}
        value={environment.run_policy_is_default ? "default" : environment.run_policy}
        options={POLICIES.map((value) => ({ value, label: words.policies[value] }))}
        onChange={change.submit}
        disabled={reason !== null || change.isBusy}
        hint={reason ?? words.policyNow(environment.run_policy)}
      />
      <Problem error={change.error} />
    </Section>
  );
}
