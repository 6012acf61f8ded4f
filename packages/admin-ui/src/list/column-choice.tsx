import { ActionIcon, Checkbox, Popover, Stack } from '@mantine/core';
import type { AdminColumn } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';

interface ColumnChoiceProps {
  readonly columns: readonly AdminColumn[];
  readonly hidden: readonly string[];
  readonly onChange: (hidden: readonly string[]) => void;
}

/** Which columns the list shows. The first is what a row is called, and stays. */
export function ColumnChoice({ columns, hidden, onChange }: ColumnChoiceProps) {
  return (
    <Popover position="bottom-end" withinPortal trapFocus shadow="md">
      <Popover.Target>
        <ActionIcon variant="default" size={36} aria-label="Choose the columns" title="Columns">
          <Icon name="columns" />
        </ActionIcon>
      </Popover.Target>
      <Popover.Dropdown aria-label="Columns of the list">
        <Stack gap="xs">
          {columns.slice(1).map(({ name, label }) => (
            <Checkbox
              key={name}
              size="sm"
              label={label}
              checked={!hidden.includes(name)}
              onChange={(event) => onChange(event.currentTarget.checked ? hidden.filter((each) => each !== name) : [...hidden, name])}
            />
          ))}
        </Stack>
      </Popover.Dropdown>
    </Popover>
  );
}
