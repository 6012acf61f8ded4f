import { useInterval } from '@mantine/hooks';
import { useState } from 'react';
import { readRecord } from '../api/client.ts';
import { toFault } from '../api/fault.ts';
import type { AdminRecord, AdminResourceShape, AdminTimelineEntry } from '../api/shapes.ts';
import { POLL_MS, useMayHaveChanged, useNews } from '../api/use-news.ts';
import { Notice } from '../feedback/notice.tsx';
import { Time } from '../values/time.tsx';

/** What the audit log knows about the record, newest first. */
export function changesIn({ sections }: AdminRecord): readonly AdminTimelineEntry[] {
  return sections.flatMap((section) => (section.kind === 'timeline' ? section.entries : [])).filter(({ changes }) => changes !== undefined);
}

interface Elsewhere {
  readonly isGone: boolean;
  readonly labels: readonly string[];
  readonly last: AdminTimelineEntry | undefined;
}

/** Beside a form: says who changed the record since the form was made, before it is saved. */
export function ChangedElsewhere({ resource, record }: { readonly resource: AdminResourceShape; readonly record: AdminRecord }) {
  const [elsewhere, setElsewhere] = useState<Elsewhere | null>(null);
  const compare = async (): Promise<void> => {
    try {
      const current = await readRecord(resource.name, record.id);
      if (current.form?.tag === record.form?.tag) return setElsewhere(null);
      setElsewhere({ isGone: false, labels: changedLabels(record, current), last: changesIn(current)[0] });
    } catch (error) {
      // Any other fault says nothing about the record.
      if (toFault(error).status === 404) setElsewhere({ isGone: true, labels: [], last: undefined });
    }
  };
  const isRecorded = resource.recordsReads === true;
  useNews(resource.name, record.id, () => void compare(), resource.follows === true && !isRecorded);
  const mayHaveChanged = useMayHaveChanged(resource.name, record.id, record, resource.follows === true && isRecorded);
  useInterval(() => void compare(), POLL_MS, { autoInvoke: resource.polls === true });
  return (
    <div role="status">
      {mayHaveChanged && (
        <Notice tone="warning">
          This record may have changed since you opened the form. When you save, you choose which values to keep.
        </Notice>
      )}
      {elsewhere !== null && (
        <Notice tone="warning">
          {elsewhere.isGone ? (
            'This record was deleted while you were editing it.'
          ) : (
            <>
              Changed{elsewhere.last?.actor === undefined ? '' : ` by ${elsewhere.last.actor}`}{' '}
              {typeof elsewhere.last?.at === 'string' ? <Time iso={elsewhere.last.at} /> : 'just now'}
              {elsewhere.labels.length === 0 ? '' : `: ${elsewhere.labels.join(', ')}`}. Your input is kept; when you save, you choose which
              values to keep.
            </>
          )}
        </Notice>
      )}
    </div>
  );
}

function changedLabels({ form }: AdminRecord, { form: current }: AdminRecord): readonly string[] {
  const fields = current?.fields ?? [];
  return fields
    .filter(({ name }) => JSON.stringify(form?.values?.[name]) !== JSON.stringify(current?.values?.[name]))
    .map(({ label }) => label);
}
