//===- CudaChipTest.cpp - clusters that a GPU runs at once ----------------===//
//
// Licensed under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "BNGrad/Transforms/Schedule/CudaChip.h"

#include <gtest/gtest.h>

using namespace mlir;
using namespace mlir::bngrad;

TEST(CudaChipTest, ClustersAreInProcessingClusters) {
  // 18, 18, 18, 16, 16, 16, 16 and 14 multiprocessors.
  const CudaChip &chip = *CudaChip::find("sm_90");
  EXPECT_EQ(chip.countBlocksAtOnce(1, 1), 132);
  EXPECT_EQ(chip.countBlocksAtOnce(1, 3), 396);
  EXPECT_EQ(chip.countBlocksAtOnce(2, 1), 132);
  EXPECT_EQ(chip.countBlocksAtOnce(4, 1), 124);
  EXPECT_EQ(chip.countBlocksAtOnce(8, 1), 120);
  EXPECT_EQ(chip.countBlocksAtOnce(16, 1), 112);
  // Blocks of a cluster may share a multiprocessor.
  EXPECT_EQ(chip.countBlocksAtOnce(4, 2), 264);
  EXPECT_EQ(chip.countBlocksAtOnce(8, 2), 248);
  EXPECT_EQ(chip.countBlocksAtOnce(16, 2), 240);
  EXPECT_EQ(CudaChip::find("sm_80")->countBlocksAtOnce(1, 2), 216);
}

TEST(CudaChipTest, ADeviceSaysHowManyClusters) {
  CudaChip chip = *CudaChip::find("sm_90");
  std::string reason;
  ASSERT_TRUE(succeeded(chip.setActiveClusters("8:16:33,16:0:7", reason)));
  EXPECT_EQ(chip.countBlocksAtOnce(8, 1), 128);
  EXPECT_EQ(chip.countBlocksAtOnce(8, 2), 264);
  EXPECT_EQ(chip.countBlocksAtOnce(8, 3), 392);
  EXPECT_EQ(chip.countBlocksAtOnce(8, 4), 528);
  EXPECT_EQ(chip.countBlocksAtOnce(16, 1), 0);
  EXPECT_EQ(chip.countBlocksAtOnce(16, 2), 112);
  // Others are assumed as before.
  EXPECT_EQ(chip.countBlocksAtOnce(4, 1), 124);
  EXPECT_EQ(chip.countBlocksAtOnce(1, 1), 132);
}

TEST(CudaChipTest, WrongClusters) {
  auto getReason = [](StringRef text, StringRef name = "sm_90") {
    CudaChip chip = *CudaChip::find(name);
    std::string reason;
    EXPECT_TRUE(failed(chip.setActiveClusters(text, reason))) << text.str();
    return reason;
  };
  for (StringRef text : {"", "8", "8:1", "8:1:2:3", "8:-1:2", "8:x:2",
                         "8:1:", "8:1:2147483648", "8:1:2,"})
    EXPECT_EQ(getReason(text),
              "expected SIZE:ONE:TWO, the clusters of SIZE blocks that run at "
              "once with one block and with two on a multiprocessor, got '" +
                  (text == "8:1:2," ? "" : text.str()) + "'");
  for (StringRef text : {"0:1:2", "1:1:2", "3:1:2", "32:1:2"})
    EXPECT_EQ(getReason(text),
              "expected a size of clusters that is a power of 2 from 2 to 16 "
              "for the given chips, got '" +
                  text.str() + "'");
  EXPECT_EQ(getReason("16:1:2", "sm_120"),
            "expected a size of clusters that is a power of 2 from 2 to 8 for "
            "the given chips, got '16:1:2'");
  EXPECT_EQ(getReason("8:3:2"),
            "expected at least as many clusters with two blocks on a "
            "multiprocessor as with one, got '8:3:2'");
  EXPECT_EQ(getReason("8:1:2,4:1:2,8:1:2"),
            "expected each size of clusters once, got 8 twice");
  EXPECT_EQ(getReason("8:1:2", "sm_80"),
            "expected chips with clusters, sm_90 or newer, got sm_80");
}
