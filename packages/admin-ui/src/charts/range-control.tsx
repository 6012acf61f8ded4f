import { Group, SegmentedControl } from '@mantine/core';
import { useState } from 'react';
import type { AdminRange } from '../api/shapes.ts';
import { later } from '../later.ts';
import { Late } from '../feedback/late.tsx';

const RangeForm = later(async () => (await import('./range-form.tsx')).RangeForm);

const RANGES: readonly { value: AdminRange; label: string }[] = [
  { value: '1h', label: '1 hour' },
  { value: '24h', label: '24 hours' },
  { value: '7d', label: '7 days' },
  { value: '30d', label: '30 days' },
];
const CUSTOM = 'custom';
const NO_ENDS: readonly [string, string] = ['', ''];

/** The range that an address asks for; undefined: none that exists. */
export function askedRange(params: URLSearchParams): AdminRange | undefined {
  const asked = params.get('range') ?? '';
  return chosenRange(asked) ?? RANGES.find(({ value }) => value === asked)?.value;
}

/** `from/to`, where the text has both and in this order. */
function chosenRange(asked: string): `${string}/${string}` | null {
  const [from = '', to = '', ...rest] = asked.split('/');
  return rest.length === 0 && Date.parse(from) < Date.parse(to) ? `${from}/${to}` : null;
}

interface RangeControlProps {
  readonly range: AdminRange;
  readonly onChange: (range: AdminRange) => void;
}

/** The usual ranges of time, and one that is typed: what dragging over a chart does, for those who do not drag. */
export function RangeControl({ range, onChange }: RangeControlProps) {
  const [isChoosing, setChoosing] = useState(false);
  const chosen = chosenRange(range);
  return (
    <>
      <Group justify="flex-end">
        <SegmentedControl
          size="xs"
          data={[...RANGES, { value: CUSTOM, label: 'Custom' }]}
          value={isChoosing || chosen !== null ? CUSTOM : range}
          onChange={(to) => {
            setChoosing(to === CUSTOM);
            if (to !== CUSTOM) onChange(to);
          }}
          aria-label="Range of time"
        />
      </Group>
      {(isChoosing || chosen !== null) && (
        <Late height={36}>
          <RangeForm
            key={chosen ?? ''}
            ends={chosen === null ? NO_ENDS : (chosen.split('/') as [string, string])}
            onChoose={(from, to) => {
              setChoosing(false);
              onChange(`${from}/${to}`);
            }}
          />
        </Late>
      )}
    </>
  );
}
