import { Button } from '@mantine/core';
import { ActionButton } from '../actions/action-button.tsx';
import type { AdminActionShape } from '../api/shapes.ts';
import { formatNumber } from '../values/format.ts';
import css from './list.module.css';

interface SelectionBarProps {
  readonly count: number;
  readonly actions: readonly AdminActionShape[];
  /** Absent: everything that matches is selected already. */
  readonly onSelectAll?: (() => void) | undefined;
  readonly selectAllLabel: string;
  readonly gathering: boolean;
  readonly onClear: () => void;
  readonly onRun: (action: AdminActionShape) => void;
}

export function SelectionBar({ count, actions, onSelectAll, selectAllLabel, gathering, onClear, onRun }: SelectionBarProps) {
  return (
    <section className={css['selection']} aria-label="Selection">
      <strong role="status">{formatNumber(count)} selected</strong>
      {onSelectAll !== undefined && (
        <Button size="compact-sm" variant="subtle" loading={gathering} onClick={onSelectAll}>
          {selectAllLabel}
        </Button>
      )}
      <Button size="compact-sm" variant="subtle" onClick={onClear}>
        Clear the selection
      </Button>
      <span className={css['push']} />
      {actions.map((action) => (
        <ActionButton
          key={action.name}
          action={action}
          count={2}
          size="sm"
          variant={action.tone === 'bad' ? 'filled' : 'default'}
          color={action.tone === 'bad' ? 'danger' : 'accent'}
          onRun={() => onRun(action)}
        />
      ))}
    </section>
  );
}
