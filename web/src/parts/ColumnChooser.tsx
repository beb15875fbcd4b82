/** Which columns a table shows. */
import { Button } from "#/design/Button";
import { Menu, MenuCheck, MenuGroup, MenuItem } from "#/design/Menu";
import { words } from "#/words";

type Props = {
  columns: readonly { id: string; title: string }[];
  shown: readonly string[];
  /** Undefined for the usual ones, so that they stay out of the address. */
  onChange: (shown: string[] | undefined) => void;
};

export function ColumnChooser({ columns, shown, onChange }: Props) {
  const toggle = (id: string, on: boolean) =>
    onChange(columns.map((column) => column.id).filter((each) => (each === id ? on : shown.includes(each))));
  return (
    <Menu
      trigger={
        <Button look="quiet" icon="columns">
          {words.table.columns}
        </Button>
      }
    >
      <MenuGroup label={words.table.columns}>
        {columns.map((column) => (
          <MenuCheck
            key={column.id}
            checked={shown.includes(column.id)}
            onChange={(on) => toggle(column.id, on)}
          >
            {column.title}
          </MenuCheck>
        ))}
      </MenuGroup>
      <MenuGroup label="">
        <MenuItem onSelect={() => onChange(undefined)}>{words.table.resetColumns}</MenuItem>
      </MenuGroup>
    </Menu>
  );
}
