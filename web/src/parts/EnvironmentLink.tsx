/** An environment's name, as a link to its evaluations, which are there even if it is on no hub. */
import { Link } from "@tanstack/react-router";

type Props = { environment: string; version?: string | null; className?: string | undefined };

export function EnvironmentLink({ environment, version, className }: Props) {
  const name = version ? `${environment}@${version}` : environment;
  const parts = environment.split("/");
  if (parts.length === 2 && parts[0] && parts[1])
    return (
      <Link
        to="/e/$owner/$name/evaluations"
        params={{ owner: parts[0], name: parts[1] }}
        className={className}
      >
        {name}
      </Link>
    );
  return (
    <Link to="/e/$name/evaluations" params={{ name: environment }} className={className}>
      {name}
    </Link>
  );
}
