import { ActionIcon, Group, NativeSelect } from '@mantine/core';
import { ADMIN_COUNT_MAX, type AdminPage } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';
import { formatNumber, plural } from '../values/format.ts';
import { PAGE_SIZES } from './list-query.ts';
import css from './list.module.css';

interface PagerProps {
  readonly page: AdminPage;
  /** Of one record and of several. */
  readonly nouns: readonly [string, string];
  readonly size: number;
  readonly isFirst: boolean;
  /** Absent: how the page was reached is not known, as after opening a shared address. */
  readonly onPrevious?: (() => void) | undefined;
  readonly onFirst: () => void;
  readonly onNext: () => void;
  readonly onSize: (size: number) => void;
}

export function Pager({ page, nouns: [one, many], size, isFirst, onPrevious, onFirst, onNext, onSize }: PagerProps) {
  return (
    <nav className={css['pager']} aria-label="Pages of the list">
      <span role="status">
        {countText(page, one, many)}
        {page.searched !== undefined && ` among the newest ${formatNumber(page.searched)}`}
        {page.atLeast === true && '. Only these are sorted: search for more words'}
      </span>
      <Group gap="xs">
        <NativeSelect
          size="xs"
          aria-label="Rows on a page"
          data={PAGE_SIZES.map((rows) => ({ value: String(rows), label: `${rows} rows` }))}
          value={String(size)}
          onChange={(event) => onSize(Number(event.currentTarget.value))}
        />
        <ActionIcon variant="default" size={30} disabled={isFirst} onClick={onFirst} aria-label="First page">
          <Icon name="first" size={16} />
        </ActionIcon>
        <ActionIcon variant="default" size={30} disabled={onPrevious === undefined} onClick={onPrevious} aria-label="Previous page">
          <Icon name="left" size={16} />
        </ActionIcon>
        <ActionIcon variant="default" size={30} disabled={page.next === null} onClick={onNext} aria-label="Next page">
          <Icon name="right" size={16} />
        </ActionIcon>
      </Group>
    </nav>
  );
}

/** Exact, or it says that there may be more. */
function countText({ count, atLeast }: AdminPage, one: string, many: string): string {
  if (count === null) return `More than ${plural(ADMIN_COUNT_MAX, one, many)}`;
  return `${atLeast === true ? 'At least ' : ''}${plural(count, one, many)}`;
}
