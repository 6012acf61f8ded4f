import { Anchor, Text, Title } from '@mantine/core';
import type { AdminOverview } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';
import { Card } from '../record/card.tsx';
import { hashOf } from '../routing/location.ts';
import { formatNumber } from '../values/format.ts';
import { Prose } from '../values/prose.tsx';
import css from './overview.module.css';

type Steps = NonNullable<AdminOverview['steps']>;

/** What to do first, checked off by what is there. */
export function FirstSteps({ steps, title }: { readonly steps: Steps; readonly title: string }) {
  const done = steps.filter(({ isDone }) => isDone).length;
  return (
    <Card>
      <section aria-label={title}>
        <Title order={2} mb={4}>
          {title}
        </Title>
        <Text size="sm" c="dimmed" mb="sm">
          {formatNumber(done)} of {formatNumber(steps.length)} done
        </Text>
        <ol className={css['steps']}>
          {steps.map(({ title: step, text, isDone, at }) => (
            <li key={step} data-done={isDone || undefined}>
              <span className={css['stepMark']}>{isDone && <Icon name="check" size={14} />}</span>
              <div>
                <Anchor href={hashOf({ page: at.page, resource: at.resource })} size="sm" fw={600}>
                  {step}
                </Anchor>
                {isDone && <span className="visually-hidden"> (done)</span>}
                <Text size="sm" c="dimmed">
                  <Prose text={text} />
                </Text>
              </div>
            </li>
          ))}
        </ol>
      </section>
    </Card>
  );
}
