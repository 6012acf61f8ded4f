import { List, Progress, Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { previewAction } from '../api/client.ts';
import { explain, toFault } from '../api/fault.ts';
import { ADMIN_ACTION_IDS_MAX, type AdminActionShape, type AdminField, type AdminPreview } from '../api/shapes.ts';
import { Notice } from '../feedback/notice.tsx';
import { toSubmission, type InputValues } from '../forms/form-values.ts';
import { formatNumber } from '../values/format.ts';
import { Prose } from '../values/prose.tsx';
import { joinPreviews } from './join-previews.ts';

const TYPING_MS = 250;
/** A dry run of more would take minutes: the first are checked, and the page says so. */
export const CHECKED_MAX = 1_000;

interface PreviewProps {
  readonly resource: string;
  readonly action: AdminActionShape;
  readonly targets: readonly { readonly id: string; readonly title: string }[];
  /** `[order, orders]`. */
  readonly nouns: readonly [string, string];
  /** The fields that are sent. */
  readonly fields: readonly AdminField[];
  readonly inputs: InputValues;
  /** Null while the server has not answered for these records and fields. */
  readonly onPreview: (preview: AdminPreview | null) => void;
}

/** What the server says the action would do, asked again when a field changes. */
export function Preview({ resource, action, targets, nouns, fields, inputs, onPreview }: PreviewProps) {
  const [preview, setPreview] = useState<AdminPreview | null>(null);
  const [checked, setChecked] = useState(0);
  const isDryRun = action.dryRun !== undefined;
  // Larger selections run in several requests; only a dry run adds their results up.
  const ids = targets.slice(0, isDryRun ? CHECKED_MAX : ADMIN_ACTION_IDS_MAX).map(({ id }) => id);
  const isTooMany = !isDryRun && targets.length > ADMIN_ACTION_IDS_MAX;
  const names = fields.map(({ name }) => name);
  const asked = JSON.stringify([resource, action.name, ids, names, inputs]);
  useEffect(() => {
    const show = (next: AdminPreview | null): void => {
      setPreview(next);
      onPreview(next);
    };
    show(null);
    setChecked(0);
    const isUnset = action.sets === true && fields.length === 0;
    const submission = toSubmission(fields, inputs, action.sets === true ? {} : null);
    const aborting = new AbortController();
    const ask = async (): Promise<void> => {
      const parts: AdminPreview[] = [];
      for (let start = 0; start < ids.length; start += ADMIN_ACTION_IDS_MAX) {
        const batch = ids.slice(start, start + ADMIN_ACTION_IDS_MAX);
        parts.push(await previewAction(resource, action.name, batch, submission.values, aborting.signal));
        setChecked(start + batch.length);
      }
      show(joinPreviews(parts, action.dryRun, nouns));
    };
    const timer = window.setTimeout(() => {
      // Wrong fields are explained at the field when the form is sent.
      if (isTooMany || isUnset || Object.keys(submission.faults).length > 0) return;
      ask().catch((error: unknown) => {
        if (!aborting.signal.aborted) show({ tone: 'warning', message: explain(toFault(error)) });
      });
    }, TYPING_MS);
    return () => {
      window.clearTimeout(timer);
      aborting.abort();
    };
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- `asked` is all of them, compared by value
  }, [asked]);
  if (preview === null)
    return <div aria-live="polite">{checked > 0 && <Progress value={(checked / ids.length) * 100} aria-label="Checked records" />}</div>;
  // Of a single record the dialog already says what happens to it.
  if (targets.length === 1 && preview.able === 1 && preview.note === undefined && preview.tone === 'good')
    return <div aria-live="polite" />;
  const titles = new Map(targets.map(({ id, title }) => [id, title]));
  return (
    <div aria-live="polite">
      <Notice tone={preview.tone}>
        <Text size="sm" component="span">
          <Prose text={preview.message} />
          {targets.length > ids.length && isDryRun && ` The first ${formatNumber(ids.length)} were checked.`}
        </Text>
      </Notice>
      {(preview.failures ?? []).length > 0 && targets.length > 1 && (
        <details>
          <Text component="summary" size="sm" mt={6}>
            Show which cannot
          </Text>
          <List size="sm" mah={180} style={{ overflow: 'auto' }}>
            {(preview.failures ?? []).map(({ id, message }) => (
              <List.Item key={id}>
                <strong>{titles.get(id) ?? id}</strong>: {message}
              </List.Item>
            ))}
          </List>
        </details>
      )}
    </div>
  );
}
