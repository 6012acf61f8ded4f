import type { AdminTimelineEntry } from '../api/shapes.ts';
import { Prose } from '../values/prose.tsx';
import { Time } from '../values/time.tsx';
import css from './record.module.css';

/** What happened and what is planned, from top to bottom. */
export function Timeline({ entries }: { readonly entries: readonly AdminTimelineEntry[] }) {
  return (
    <ol className={css['timeline']}>
      {entries.map((entry, index) => (
        // oxlint-disable-next-line no-array-index-key -- entries have no id, and their order is what they are
        <li key={index} data-tone={entry.tone} data-planned={entry.planned === true ? true : undefined}>
          <span className={css['timelineTitle']}>{entry.title}</span>
          {entry.at !== null && (
            <span className={css['timelineTime']}>
              {entry.planned === true && 'planned for '}
              <Time iso={entry.at} whole />
            </span>
          )}
          {entry.text !== undefined && (
            <span className={css['timelineText']}>
              <Prose text={entry.text} />
            </span>
          )}
        </li>
      ))}
    </ol>
  );
}
