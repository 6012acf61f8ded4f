import { Button, Group, Modal, Radio, Stack, Text } from '@mantine/core';
import { useState } from 'react';
import { formatRelative } from '../values/format.ts';
import { useNow } from '../values/now.ts';
import type { Conflict } from './form-source.ts';
import type { InputValues } from './form-values.ts';
import { inputText, merged, mergeRows, type MergeChoice } from './merge.ts';

import css from './forms.module.css';

interface MergeDialogProps {
  readonly conflict: Conflict;
  readonly before: InputValues;
  readonly yours: InputValues;
  readonly theirs: InputValues;
  readonly onMerge: (inputs: InputValues) => void;
  readonly onClose: () => void;
}

/** Field by field: keep yours, or take theirs. */
export function MergeDialog({ conflict: { form, changes }, before, yours, theirs, onMerge, onClose }: MergeDialogProps) {
  const now = useNow();
  const [choices, setChoices] = useState<Readonly<Record<string, MergeChoice | undefined>>>({});
  const rows = mergeRows(form.fields, before, yours, theirs);
  const isDecided = rows.every(({ field, isConflict }) => !isConflict || choices[field.name] !== undefined);
  const byWhom = (name: string): string => {
    const entry = changes.find((each) => each.changes?.some((change) => change.name === name) === true);
    if (entry === undefined) return '';
    const when = entry.at === null ? '' : `, ${formatRelative(entry.at, now)}`;
    return ` (${entry.actor ?? 'by a program'}${when})`;
  };
  return (
    <Modal opened onClose={onClose} title="This record has changed" centered size="lg" closeButtonProps={{ 'aria-label': 'Close' }}>
      <Stack gap="md">
        <Text size="sm">
          {rows.length === 0
            ? 'Nothing in this form was changed by others. Your changes can be saved.'
            : 'Nothing was saved yet. Choose the value to save for each field.'}
        </Text>
        {rows.map(({ field, yours: own, theirs: other, isConflict }) => (
          <Radio.Group
            key={field.name}
            label={field.label}
            description={isConflict ? 'Changed by you and by somebody else.' : 'Changed by somebody else.'}
            value={choices[field.name] ?? (isConflict ? '' : 'theirs')}
            onChange={(choice) => setChoices({ ...choices, [field.name]: choice as MergeChoice })}
          >
            <Stack gap={6} mt={6} className={css['merge'] ?? ''}>
              <Radio value="yours" label={`${isConflict ? 'Keep yours' : 'Keep the value before'}: ${inputText(own)}`} />
              <Radio value="theirs" label={`Take theirs: ${inputText(other)}${byWhom(field.name)}`} />
            </Stack>
          </Radio.Group>
        ))}
        <Group justify="flex-end" gap="sm">
          <Button variant="default" onClick={onClose}>
            Back to the form
          </Button>
          <Button disabled={!isDecided} onClick={() => onMerge(merged(rows, yours, theirs, choices))}>
            Save
          </Button>
        </Group>
      </Stack>
    </Modal>
  );
}
