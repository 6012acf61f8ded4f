import { Text } from '@mantine/core';
import { useEffect, useState } from 'react';
import { previewAction } from '../api/client.ts';
import { explain, toFault } from '../api/fault.ts';
import { ADMIN_ACTION_IDS_MAX, type AdminActionShape, type AdminPreview } from '../api/shapes.ts';
import { Notice } from '../feedback/notice.tsx';
import { toSubmission, type InputValues } from '../forms/form-values.ts';
import { Prose } from '../values/prose.tsx';

const TYPING_MS = 250;

interface PreviewProps {
  readonly resource: string;
  readonly action: AdminActionShape;
  readonly ids: readonly string[];
  readonly inputs: InputValues;
}

/** What the server says the action would do, asked again when a field changes. */
export function Preview({ resource, action, ids, inputs }: PreviewProps) {
  const [preview, setPreview] = useState<AdminPreview | null>(null);
  const asked = JSON.stringify([resource, action.name, ids, inputs]);
  useEffect(() => {
    const submission = toSubmission(action.fields ?? [], inputs, null);
    const aborting = new AbortController();
    const timer = window.setTimeout(() => {
      // Wrong fields are explained at the field when the form is sent. Larger selections run in several requests.
      if (Object.keys(submission.faults).length > 0 || ids.length > ADMIN_ACTION_IDS_MAX) return setPreview(null);
      previewAction(resource, action.name, ids, submission.values, aborting.signal).then(setPreview, (error: unknown) => {
        if (!aborting.signal.aborted) setPreview({ tone: 'warning', message: explain(toFault(error)) });
      });
    }, TYPING_MS);
    return () => {
      window.clearTimeout(timer);
      aborting.abort();
    };
    // oxlint-disable-next-line react-hooks/exhaustive-deps -- `asked` is all of them, compared by value
  }, [asked]);
  if (preview === null) return <div aria-live="polite" />;
  return (
    <div aria-live="polite">
      <Notice tone={preview.tone}>
        <Text size="sm" component="span">
          <Prose text={preview.message} />
        </Text>
      </Notice>
    </div>
  );
}
