import { Hint } from '../feedback/hint.tsx';
import { formatRelative, formatTime } from './format.ts';
import { useNow } from './now.ts';
import { useExactTimes } from './preferences.ts';
import css from './values.module.css';

/** Relative in lists, with the exact time when pointed at; on a record's own page both are there to read. */
export function Time({ iso, whole = false }: { readonly iso: string; readonly whole?: boolean }) {
  const now = useNow();
  const exact = useExactTimes();
  if (whole) {
    return (
      <time dateTime={iso}>
        <span className={css['time']}>{formatTime(iso)}</span>{' '}
        <span className={`${css['time']} ${css['dash']}`}>({formatRelative(iso, now)})</span>
      </time>
    );
  }
  return (
    <Hint label={exact ? formatRelative(iso, now) : formatTime(iso)}>
      <time dateTime={iso} className={css['time']}>
        {exact ? formatTime(iso) : formatRelative(iso, now)}
      </time>
    </Hint>
  );
}
