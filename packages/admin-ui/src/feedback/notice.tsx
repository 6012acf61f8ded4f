import { Alert } from '@mantine/core';
import type { ReactNode } from 'react';
import type { AdminTone } from '../api/shapes.ts';
import { Icon } from '../icons/icon.tsx';
import css from './feedback.module.css';
import { toned } from './toned.ts';

export function Notice({ tone, children }: { readonly tone: AdminTone; readonly children: ReactNode }) {
  return (
    <Alert
      className={css['notice']}
      vars={toned}
      data-tone={tone}
      role="note"
      icon={<Icon name={tone === 'info' || tone === 'neutral' ? 'info' : tone === 'good' ? 'check' : 'warning'} />}
    >
      {children}
    </Alert>
  );
}
