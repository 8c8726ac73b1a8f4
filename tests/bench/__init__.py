"""`make bench`: what our servers cost, beside a raw ASGI hello in the same minute and, where there is one, the real kube-apiserver."""
