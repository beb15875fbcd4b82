/** Who may do what with an environment, and the changes that only its owners may make. */
import { PageBody, Section } from "#/design/Section";
import { useEnvironment } from "../context";
import { LogInFirst } from "../LogInFirst";
import { text } from "../words";
import { Collaborators } from "./Collaborators";
import { DeleteEnvironment } from "./DeleteEnvironment";
import { RunPolicy } from "./RunPolicy";
import { Visibility } from "./Visibility";

const words = text.access;

export function Access() {
  const { environment, user } = useEnvironment();
  if (user === null) return <LogInFirst />;
  return (
    <PageBody>
      <Section title={words.yours}>
        <p>{words.roles[environment.role ?? "none"]}</p>
      </Section>
      <Visibility />
      <RunPolicy />
      <Collaborators />
      <DeleteEnvironment />
    </PageBody>
  );
}
