import { Anchor, Button } from '@mantine/core';
import type { AdminFieldChange, AdminTimelineEntry } from '../api/shapes.ts';
import { hashOf, listHash } from '../routing/location.ts';
import { lowerFirst, plural } from '../values/format.ts';
import { Prose } from '../values/prose.tsx';
import { Time } from '../values/time.tsx';
import { Changes } from './changes.tsx';
import css from './record.module.css';

interface TimelineProps {
  readonly entries: readonly AdminTimelineEntry[];
  /** Puts a value back; absent: nothing can be restored here. */
  readonly onRestore?: ((change: AdminFieldChange) => void) | undefined;
}

/** What happened and what is planned, from top to bottom. What a request did besides is folded under its entry. */
export function Timeline({ entries, onRestore }: TimelineProps) {
  return (
    <ol className={css['timeline']}>
      {entries.map((entry, index) => (
        // oxlint-disable-next-line no-array-index-key -- entries have no id, and their order is what they are
        <li key={index} data-tone={entry.tone} data-planned={entry.planned === true ? true : undefined}>
          <span className={css['timelineTitle']}>
            {entry.title}
            {entry.actor !== undefined && ` by ${entry.actor}`}
            {entry.via !== undefined && ` with ${lowerFirst(entry.via)}`}
          </span>
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
          {entry.changes !== undefined && (
            <Changes
              rows={entry.changes}
              empty=""
              label={`Changes: ${entry.title}`}
              renderAction={
                onRestore === undefined || !entry.changes.some(({ restore }) => restore !== undefined)
                  ? undefined
                  : (change) =>
                      change.restore === undefined ? null : (
                        <Button size="compact-xs" variant="default" onClick={() => onRestore(change)}>
                          Restore<span className="visually-hidden"> the value of {change.label ?? change.name} before</span>
                        </Button>
                      )
              }
            />
          )}
          <Ways entry={entry} isFirstOfRequest={entry.request_id !== entries[index - 1]?.request_id} />
          {entry.folded !== undefined && (
            <details className={css['folded']}>
              <summary>{plural(entry.folded.length, 'more entry', 'more entries')} of this request</summary>
              <Timeline entries={entry.folded} />
            </details>
          )}
        </li>
      ))}
    </ol>
  );
}

/** Where more is said: the entry itself, and once for each request everything that it did. */
function Ways({
  entry: { link, request_id },
  isFirstOfRequest,
}: {
  readonly entry: AdminTimelineEntry;
  readonly isFirstOfRequest: boolean;
}) {
  if (link === undefined) return null;
  return (
    <span className={css['timelineText']}>
      <Anchor size="sm" href={hashOf({ page: 'record', resource: link.resource, id: link.id })}>
        {link.text}
      </Anchor>
      {request_id !== undefined && isFirstOfRequest && (
        <>
          {' · '}
          <Anchor size="sm" href={listHash(link.resource, { request_id })}>
            All of this request
          </Anchor>
        </>
      )}
    </span>
  );
}
