/** What each column of the catalogue shows. */
import { Link } from "@tanstack/react-router";
import type { EnvironmentInfo, EnvironmentSort } from "#/api/types";
import { When } from "#/parts/Figures";
import { formatCount } from "#/parts/format";
import type { Column } from "#/parts/VirtualTable";
import { CheckMark } from "./CheckMark";
import styles from "./Environments.module.css";
import { text } from "./words";

const titles = text.columns;
const None = () => <span className={styles.none}>–</span>;

export const COLUMNS: readonly Column<EnvironmentInfo, EnvironmentSort>[] = [
  {
    id: "name",
    title: titles.name,
    width: 13,
    grow: 2,
    sort: "name",
    cell: (environment) => (
      <Link
        to="/e/$owner/$name/readme"
        params={{ owner: environment.owner, name: environment.name }}
        className={styles.link}
        title={`${environment.owner}/${environment.name}`}
      >
        <span className={styles.owner}>{environment.owner}/</span>
        {environment.name}
      </Link>
    ),
  },
  {
    id: "description",
    title: titles.description,
    width: 10,
    grow: 3,
    cell: ({ description }) => <span title={description}>{description || <None />}</span>,
  },
  {
    id: "tags",
    title: titles.tags,
    width: 7,
    grow: 1,
    cell: ({ tags }) => <span title={tags.join(", ")}>{tags.join(", ") || <None />}</span>,
  },
  { id: "version", title: titles.version, width: 5, cell: ({ latest }) => latest?.version ?? <None /> },
  {
    id: "check",
    title: titles.check,
    width: 7,
    cell: ({ latest }) => (latest ? <CheckMark status={latest.check.status} /> : <None />),
  },
  {
    id: "tasks",
    title: titles.tasks,
    width: 4,
    isNumber: true,
    cell: ({ latest }) => formatCount(latest?.check.tasks),
  },
  {
    id: "visibility",
    title: titles.visibility,
    width: 5,
    cell: ({ visibility }) => text.names[visibility],
  },
  {
    id: "role",
    title: titles.role,
    width: 5,
    cell: ({ role }) => (role ? text.roles[role] : <None />),
  },
  {
    id: "updated",
    title: titles.updated,
    width: 5.5,
    sort: "updated_at",
    isNumber: true,
    cell: (environment) => <When at={environment.updated_at} />,
  },
];
