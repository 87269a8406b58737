"""The owners: one writer per partition, hosted by Faust. Decides, appends, folds, sends."""
